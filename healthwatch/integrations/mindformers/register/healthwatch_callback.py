"""What `auto_register: healthwatch_callback.HealthWatch` loads; `healthwatch mindformers-path` prints this folder."""

from healthwatch.integrations.mindformers import HealthWatch

__all__ = ["HealthWatch"]
