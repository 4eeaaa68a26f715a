import { readFileSync } from 'node:fs';
import { brotliDecompressSync } from 'node:zlib';
import { parseJson } from '../../../values/index.ts';

/**
 * A field of a message. An empty JSON name means that the fields of its value belong to the parent. The type is a protobuf
 * scalar or the name of a message. The label is `many` for repeated fields.
 */
export type MessageField = readonly [number: number, name: string, type: string, label?: 'many' | 'map'];

/** Messages by OpenAPI component: `io.k8s.api.core.v1.Pod`. */
export type Messages = Readonly<Record<string, readonly MessageField[]>>;

/** Reads the file on first use, once per thread: 3 ms, 100 KB of text. */
class LazyMessages {
  #messages: Messages | undefined;

  get(): Messages {
    const file = new URL('messages.json.br', import.meta.url);
    this.#messages ??= parseJson(brotliDecompressSync(readFileSync(file)).toString()) as Messages;
    return this.#messages;
  }
}

const MESSAGES = new LazyMessages();

/** The protobuf messages of Kubernetes' kinds, from tools/kubernetes-protobuf.ts. Shared: do not change. */
export function kubernetesMessages(): Messages {
  return MESSAGES.get();
}
