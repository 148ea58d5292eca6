"""What an executor does with the calls that it is given."""
