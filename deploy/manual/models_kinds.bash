
    model) _perceptronctl_models "$1" ;;
    models)
      if [[ $1 == *,* ]]; then before+=${1%,*},; fi
      _perceptronctl_models "${1##*,}"
      ;;