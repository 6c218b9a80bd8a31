"""The implementation, in rooms; each imports only those before it. Users import `pscdsl`."""
