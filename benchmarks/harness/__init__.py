"""What the scripts of this folder share: the workload, the peers that anybody would write, and how time is taken."""
