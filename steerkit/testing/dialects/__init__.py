"""What the providers' formats say and refuse, one format a module. Pure: JSON in, JSON out."""
