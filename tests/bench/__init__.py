"""What steerkit costs, against hand-written code that does the same work in the same run (`make bench`)."""
