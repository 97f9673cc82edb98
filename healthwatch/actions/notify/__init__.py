"""The notify action: notices travel to their receivers through apprise, in threads of their own."""

from healthwatch.actions.notify.delivery import Delivery, validate
from healthwatch.actions.notify.lane import LaneState
from healthwatch.actions.notify.line import Pace

__all__ = ["Delivery", "LaneState", "Pace", "validate"]
