"""From groups of rollouts to drafts of lessons: with evidence alone, or with a model's help."""
