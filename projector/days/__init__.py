"""The read models: what each budget had in each period, who spent it and when, as documents that can be made again."""
