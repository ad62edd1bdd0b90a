/** How much a model takes at once, in tokens. */
export interface ModelWindow {
  /** What it is given and what it says, together. */
  readonly window: number;
  /** The longest answer that it gives. */
  readonly maxOutput?: number;
}

/** The windows of models, by their own names or as `PROVIDER/MODEL`, or a function that knows them. */
export type Windows =
  | Readonly<Record<string, ModelWindow>>
  | ((model: string, provider: string | undefined) => ModelWindow | undefined);

/** The window of a model; undefined where the deck does not tell it, or tells what no window is. */
export function windowOf(
  windows: Windows | undefined,
  { model, provider }: { readonly model: string; readonly provider?: string },
): ModelWindow | undefined {
  const told =
    typeof windows === 'function'
      ? windows(model, provider)
      : (named(windows, model) ?? named(windows, `${provider?.split('.')[0]}/${model}`));
  return told !== undefined && told.window > 0 ? told : undefined;
}

function named(
  windows: Readonly<Record<string, ModelWindow>> | undefined,
  name: string,
): ModelWindow | undefined {
  return windows !== undefined && Object.hasOwn(windows, name) ? windows[name] : undefined;
}
