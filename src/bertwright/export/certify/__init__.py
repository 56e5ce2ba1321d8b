"""The certificate of a published model: every runtime on this machine answers the same lines, compared with one."""
