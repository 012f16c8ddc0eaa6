"""The boxes of the map, one file each. They see core and dataflow, never the world."""
