"""Fan-out: from a job, which is a cursor over receivers, to deliveries and their outcomes."""
