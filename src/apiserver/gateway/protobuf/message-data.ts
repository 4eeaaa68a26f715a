import { readFileSync } from 'node:fs';
import { brotliDecompressSync } from 'node:zlib';

/**
 * A field of a message: its number, its name in JSON (empty: JSON has the fields of the message in its parent), its type (a
 * scalar of protobuf or a message), and whether there are many or a map of them.
 */
export type MessageField = readonly [number: number, name: string, type: string, label?: 'many' | 'map'];

/** Messages by the names that their types have among the published schemas: `io.k8s.api.core.v1.Pod`. */
export type Messages = Readonly<Record<string, readonly MessageField[]>>;

/** Reads the file when it is first asked, once per thread: 3 ms, 100 KB of text. */
class LazyMessages {
  #messages: Messages | undefined;

  get(): Messages {
    const file = new URL('messages.json.br', import.meta.url);
    this.#messages ??= JSON.parse(brotliDecompressSync(readFileSync(file)).toString()) as Messages;
    return this.#messages;
  }
}

const MESSAGES = new LazyMessages();

/** The protobuf form of Kubernetes' kinds, made by tools/kubernetes-protobuf.ts. Shared: not to be changed. */
export function kubernetesMessages(): Messages {
  return MESSAGES.get();
}
