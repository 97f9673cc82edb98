"""What `auto_register: healthwatch_callback.HealthWatch` loads, with `REGISTER_PATH=$(healthwatch mindformers-path)`."""

from healthwatch.integrations.mindformers import HealthWatch

__all__ = ["HealthWatch"]
