/** How far an act is. */
export interface Progress {
  readonly done: number;
  /** Estimated when the act began. */
  readonly total: number;
}

/** Options of an act that can take long. */
export interface ProgressOptions {
  /** Called some times while the act goes on. */
  readonly onProgress?: OnProgress;
}

/** Receives how far an act is. An error that it throws ends the act. */
export type OnProgress = (progress: Progress) => void;
