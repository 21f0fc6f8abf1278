"""Sections of the page: functions from findings to a section, or to None if it does not apply."""
