"""Side-by-side measurements of Common Purse and its peers. No part of the product; nothing may import it."""
