import type { WatchEvent } from '../../cluster/index.ts';

/**
 * Encodes events of whole objects as lines. All watchers of a change come one after another, so the last line is kept for
 * them: encoding a large object takes longer than all else that a watcher costs.
 */
export class EventLines {
  #last: (WatchEvent & { readonly line: Buffer }) | undefined;

  lineOf({ type, object }: WatchEvent): Buffer {
    if (this.#last?.object === object && this.#last.type === type) {
      return this.#last.line;
    }
    const line = Buffer.from(`${JSON.stringify({ type, object })}\n`);
    // Only stored objects are frozen. Others may change.
    this.#last = Object.isFrozen(object) ? { type, object, line } : undefined;
    return line;
  }
}
