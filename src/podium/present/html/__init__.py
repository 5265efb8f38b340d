"""Reports as one HTML file each: no network, no scripts, readable on a screen and on paper."""
