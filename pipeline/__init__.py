"""The Spark job of lagwise and its command, one package per step of the data.

kafka -> decode -> fold -> lag -> tables -> planning -> publish

Only `run.batch` joins the steps, and nothing here knows `operate`, the command. Start with `run.batch.steps`.
"""
