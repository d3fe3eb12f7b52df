# Completion of @PROGRAM@ in fish. Generated from the program's options.
# @MODELS@

# The models of the server on the command line; none if it does not answer at once.
function __perceptronctl_models
    set -l connection
    set -l left 0
    set -l words (commandline -opc)
    for word in $words[2..-1]
        if test $left -gt 0
            set -a connection $word
            set left 0
        else if contains -- $word --server --tls-ca --tls-cert --tls-key --tls-server-name
            set -a connection $word
            set left 1
        else if string match -q -r -- '^--(server=|tls)' $word
            set -a connection $word
        end
    end
    perceptronctl $connection --timeout 0.5 list 2>/dev/null | tail -n +2 | string match -r '^[A-Za-z0-9][A-Za-z0-9._-]*'
end
# @END@

# Whether the cursor is after this subcommand ("": before any), and after N of its arguments: at SUBCOMMAND [-eq|-ge N].
function __@PROGRAM@_at
    set -l words (commandline -opc)
    set -l subcommand ''
    set -l place 0
    set -l left 0
    for word in $words[2..-1]
        if test $left -gt 0
            set left (math $left - 1)
        else if string match -q -- '--*=*' $word
            continue
        else if string match -q -- '-*' $word
            set left (__@PROGRAM@_count "$subcommand:$word")
        else if test -z "$subcommand"
            set subcommand $word
        else
            set place (math $place + 1)
        end
    end
    test "$subcommand" = "$argv[1]"; or return 1
    test (count $argv) -eq 1; or test $place $argv[2] $argv[3]
end

@TABLES@
