# SPDX-License-Identifier: GPL-2.0-or-later
#
# Completion of profil for fish: see profil complete in profil(1)

function __profil_complete
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    set -l lines (profil complete -- $before[2..-1] "$current" 2>/dev/null)
    set -l kind (string split ' ' -- $lines[1])

    # --name=path is one word.
    set -l name (string match -r '^--[^=]*=' -- "$current")
    set -l path (string replace -r '^--[^=]*=' '' -- "$current")

    switch "$kind[1]"
        case COMMAND
            set -e before[1..$kind[2]]
            complete -C (string join ' ' -- (string escape -- $before) "$current")
        case FILE
            set path (__fish_complete_path "$path" '')
            string join \n -- "$name"$path
        case DIR
            set path (__fish_complete_directories "$path" '')
            string join \n -- "$name"$path
        case PID
            __fish_complete_pids
        case '*'
            string join \n -- $lines[2..-1]
    end
end

complete -c profil -f -a '(__profil_complete)'
