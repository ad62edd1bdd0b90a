/** An option as a verb declares it. A text, a number and an element of a list are the word after its name. */
export interface Option {
  /** `list` takes one text each time that the option is given. */
  readonly type: 'string' | 'number' | 'boolean' | 'list';
  /** What it does, for the help. A hidden option has none. */
  readonly describe?: string;
  /** What its value is, in the help: `FILE`. Default: `TEXT`, or `N` for a number. */
  readonly takes?: string;
  /** Another name, of one letter. */
  readonly alias?: string;
  readonly choices?: readonly string[];
  readonly default?: string | number;
  readonly required?: boolean;
  /** The option that must be given with it. */
  readonly needs?: string;
  readonly hidden?: boolean;
  /** Whether `--no-NAME` is allowed: false, and 0 for a number. */
  readonly negatable?: boolean;
}

/** Options by their names, in the order of the help. */
export type Options = Readonly<Record<string, Option>>;

/** What an argument is, for the help, and the words that it may be. */
type Argument = string | { readonly describe: string; readonly choices: readonly string[] };

/** Arguments by their names in the grammar. */
export type Arguments = Readonly<Record<string, Argument>>;

type Camel<S extends string> = S extends `${infer Word}-${infer Rest}`
  ? `${Word}${Capitalize<Camel<Rest>>}`
  : S;

type Value<O extends Option> = O extends { readonly type: 'boolean' }
  ? boolean
  : O extends { readonly type: 'number' }
    ? number
    : O extends { readonly type: 'list' }
      ? readonly string[]
      : Text<O> | (O extends { readonly negatable: true } ? false : never);

type Text<O extends Option> = O extends { readonly choices: readonly (infer Choice)[] } ? Choice : string;

type IsSet<O extends Option> = O extends { readonly default: string | number } | { readonly required: true }
  ? true
  : false;

/** The values that a verb receives for its options: by the names in camel case, undefined where none is given. */
export type OptionValues<O extends Options> = {
  readonly [Name in keyof O as Camel<Name & string>]: IsSet<O[Name]> extends true
    ? Value<O[Name]>
    : Value<O[Name]> | undefined;
};

type Words<Grammar extends string> = Grammar extends `${infer Word} ${infer Rest}`
  ? Word | Words<Rest>
  : Grammar;

/**
 * The values of the arguments in a grammar: `<name>` is a text, `[name]` one or undefined, `<names..>` several, and
 * `[names..]` any number.
 */
export type ArgumentValues<Grammar extends string> = {
  readonly [Word in Words<Grammar> as Word extends `<${infer Name}..>` | `[${infer Name}..]`
    ? Name
    : Word extends `<${infer Name}>` | `[${infer Name}]`
      ? Name
      : never]: Word extends `<${string}..>` | `[${string}..]`
    ? readonly string[]
    : Word extends `<${string}>`
      ? string
      : string | undefined;
};

/** The name of an option in camel case: `max-steps` is `maxSteps`. */
export function camelOf(name: string): string {
  return name.replace(/-(.)/g, (_dash, letter: string) => letter.toUpperCase());
}
