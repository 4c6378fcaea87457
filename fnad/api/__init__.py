"""The user's functions: from a Python function to its derivatives and its compiled form.

Every transform works the same way. It flattens its arguments to leaves (`leaves`), traces the user's function on them
(`staging`), rewrites the program, and runs it (`running`): inlined in the trace under way if there is one, executed
otherwise. So transforms nest in any order, and there is one level of traced values.
"""
