"""The functions of fnad: from a Python function to its derivatives and its compiled form.

Every transform works in the same way. It flattens its arguments to leaves and traces the user function on them
(`staging`), rewrites the program, and runs it (`running`): inlined in the trace under way if there is one, executed
otherwise. So transforms nest in any order, and there is one level of traced values.

Each folder imports only from the ones before it: `staging`, `running`, `inspect`, `functions`, `solvers`.
"""
