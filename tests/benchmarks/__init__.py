"""Programs that measure: speed as ratios side by side in one run, memory in processes of their own."""
