/** The context window of a model, in tokens. */
export interface ModelWindow {
  /** Prompt and answer together. */
  readonly window: number;
  /** The longest answer. */
  readonly maxOutput?: number;
}

/** Context windows by model name or `PROVIDER/MODEL`, or a function that returns them. */
export type Windows =
  | Readonly<Record<string, ModelWindow>>
  | ((model: string, provider: string | undefined) => ModelWindow | undefined);

/** The window of a model; undefined if the configuration gives none, or one that is not positive. */
export function windowOf(
  windows: Windows | undefined,
  { model, provider }: { readonly model: string; readonly provider?: string },
): ModelWindow | undefined {
  const found =
    typeof windows === 'function'
      ? windows(model, provider)
      : (named(windows, model) ?? named(windows, `${provider?.split('.')[0]}/${model}`));
  return found !== undefined && found.window > 0 ? found : undefined;
}

function named(
  windows: Readonly<Record<string, ModelWindow>> | undefined,
  name: string,
): ModelWindow | undefined {
  return windows !== undefined && Object.hasOwn(windows, name) ? windows[name] : undefined;
}
