// The time that the templates of one policy may take in one evaluation. Rendering is synchronous: meanwhile, all other
// policies wait.

/** Published policies take some milliseconds; a list of all nodes of the largest clusters, half a second. Milliseconds. */
const MAX_RENDERING_MS = 2_000;

/** The message for templates that were not rendered any more. */
export const RENDERING_TOO_LONG = `the templates of the policy take more than ${MAX_RENDERING_MS / 1000} s together: look up fewer objects, or split the policy`;

/** Adds up renderings. Created for each evaluation. */
export class RenderingTime {
  #spentMs = 0;

  /** Renders, unless the time is used up; then undefined. */
  render<Result>(render: () => Result): Result | undefined {
    if (this.#spentMs > MAX_RENDERING_MS) {
      return undefined;
    }
    const start = performance.now();
    try {
      return render();
    } finally {
      this.#spentMs += performance.now() - start;
    }
  }
}
