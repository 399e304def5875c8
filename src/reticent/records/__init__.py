"""What ran: ledgers of runs and of watched loops, the faults in them, and what contradicts itself. No attacker here."""
