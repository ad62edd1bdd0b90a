/** The shells with a script, and where each looks for the scripts of a user. */
export const shells = ['bash', 'zsh', 'fish'] as const;

export type Shell = (typeof shells)[number];

/**
 * Bash splits words at `:` and `@` too, and replaces the part of a word after the last of them. The words come from the
 * line itself, so that a name with these characters stays one word.
 */
const bash = `# Completion of tape for bash.
_tape() {
  local line="\${COMP_LINE:0:COMP_POINT}" words=() answers=() answer
  read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  # What bash has split off before the part of the last word that it replaces.
  local current="\${words[-1]}"
  local cut="\${current%"$2"}"
  mapfile -t answers < <("\${words[0]}" __complete "\${words[@]:1}" 2> /dev/null)
  COMPREPLY=()
  for answer in "\${answers[@]}"; do
    answer="\${answer#"$cut"}"
    printf -v answer %q "$answer"
    COMPREPLY+=("$answer")
  done
}
complete -o default -F _tape tape
`;

const zsh = `#compdef tape
# Completion of tape for zsh.
_tape() {
  local -a answers
  answers=("\${(@f)$("\${words[1]}" __complete "\${(@)words[2,CURRENT]}" 2> /dev/null)}")
  answers=(\${answers:#})
  if (( \${#answers} )); then compadd -a answers; else _files; fi
}
if [[ $funcstack[1] == _tape ]]; then _tape "$@"; else compdef _tape tape; fi
`;

/** Where nothing is known, fish offers files, as the other shells do. */
const fish = `# Completion of tape for fish.
function __tape_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l answers ($words[1] __complete $words[2..-1] 2> /dev/null)
    if test (count $answers) -gt 0
        printf '%s\\n' $answers
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c tape -f -a '(__tape_complete)'
`;

/** The scripts that complete command lines of `tape`, by their shells. */
export const completionScripts: Readonly<Record<Shell, string>> = { bash, zsh, fish };
