"""The pages of the app: thin views of dojo_core.service."""
