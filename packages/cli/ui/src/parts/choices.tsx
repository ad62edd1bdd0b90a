/** One of a few, all of which are in view. */
export function Choice<T extends string>({
  label,
  options,
  value,
  choose,
}: {
  readonly label: string;
  readonly options: readonly (readonly [value: T, name: string])[];
  readonly value: T;
  readonly choose: (value: T) => void;
}) {
  return (
    <fieldset class="choice">
      <legend class="unseen">{label}</legend>
      {options.map(([one, name]) => (
        <button key={one} type="button" aria-pressed={one === value} onClick={() => choose(one)}>
          {name}
        </button>
      ))}
    </fieldset>
  );
}

/** Something that is on or off. */
export function Toggle({
  label,
  isOn,
  turn,
}: {
  readonly label: string;
  readonly isOn: boolean;
  readonly turn: () => void;
}) {
  return (
    <button type="button" class="toggle" aria-pressed={isOn} onClick={turn}>
      {label}
    </button>
  );
}
