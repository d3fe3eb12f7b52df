
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
