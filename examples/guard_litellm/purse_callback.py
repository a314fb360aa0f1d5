"""What LiteLLM's proxy loads beside its config: every request is held in the wallet first.

pip install 'commonpurse[litellm]'
PURSE_URL=http://127.0.0.1:8080 PURSE_KEY=purse_... OPENAI_API_KEY=... litellm --config config.yaml
"""

import os

from commonpurse.aio import Purse
from commonpurse.integrations.litellm import PurseGuard

guard = PurseGuard(Purse(os.environ["PURSE_URL"], os.environ["PURSE_KEY"]), labels={"app": "examples"})
