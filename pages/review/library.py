"""Soon."""

from pages.parts import frame

frame.page("Soon", "This page is being built.")
