"""Winnow's headless core: everything but the screens. It never imports Streamlit."""
