"""Background work: the queue in the database, the states of a job, and how a worker carries one out."""

from core.job import LEASE_S
from core.jobs.carrying import Came, carry_out
from core.jobs.queue import EVALUATION, FAULT, Queue, Subject, Work

__all__ = ["EVALUATION", "FAULT", "LEASE_S", "Came", "Queue", "Subject", "Work", "carry_out"]
