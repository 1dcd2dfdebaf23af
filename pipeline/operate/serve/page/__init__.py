"""The page: groups, one group, health. HTML is made here, is read without JavaScript, and loads nothing from elsewhere.

Shows `serve.views`, which the JSON API answers as well. Imports Jinja2. Start with `routes`; `words` says how values
read, `names` what members are called, `heat`, `plot` and `spark` draw.
"""
