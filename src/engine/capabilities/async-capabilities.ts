import { DEFAULT_CAPABILITY_TIMEOUT_MS } from '../definition/limits.ts';
import { EngineError } from '../values/errors.ts';
import type { HostCaller } from './host-port.ts';
import type { JsonValue } from '../values/json-text.ts';
import { LocalAnswers } from './local-answers.ts';
import { answerKubernetes, NO_CLUSTER_MESSAGE } from './kubernetes.ts';
import type { KubernetesReader } from './kubernetes.ts';
import { lookUpHost } from './net.ts';
import { type ImageReader, readImageRequest } from './oci.ts';
import { parseJson } from '../../values/index.ts';

export interface AsyncCapabilitiesOptions {
  /** The cluster that context-aware policies read. Default: none, so that every read fails. */
  readonly kubernetes?: KubernetesReader;
  /** Reads registries. Default: none, so that every read fails. */
  readonly images?: ImageReader;
  /** Timeout of one host call, in milliseconds. Default {@link DEFAULT_CAPABILITY_TIMEOUT_MS}. */
  readonly timeoutMs?: number;
}

/** All host capabilities, including asynchronous ones. Runs in another thread than the guests, behind a HostPort. */
export class AsyncCapabilities {
  readonly #kubernetes: KubernetesReader | undefined;
  readonly #images: ImageReader | undefined;
  readonly #timeoutMs: number;
  readonly #local = new LocalAnswers();

  constructor(options: AsyncCapabilitiesOptions = {}) {
    this.#kubernetes = options.kubernetes;
    this.#images = options.images;
    this.#timeoutMs = options.timeoutMs ?? DEFAULT_CAPABILITY_TIMEOUT_MS;
  }

  /** The answer as JSON, for {@link HostPort.request}. Rejects with an Error whose message the guest gets. */
  async answer(capability: string, payloadJson: string, caller?: HostCaller): Promise<string> {
    const local = this.#local.answer(capability, payloadJson);
    if (local !== undefined) {
      return local;
    }
    const payload = parseJson(payloadJson) as JsonValue;
    if (capability === 'net/v1/dns_lookup_host') {
      return JSON.stringify(await lookUpHost(payload, this.#timeoutMs));
    }
    if (capability.startsWith('kubernetes/')) {
      if (this.#kubernetes === undefined) {
        throw new EngineError('capability-failed', NO_CLUSTER_MESSAGE);
      }
      const operation = capability.slice('kubernetes/'.length);
      return JSON.stringify(
        await answerKubernetes(this.#kubernetes, operation, payload, AbortSignal.timeout(this.#timeoutMs)),
      );
    }
    if (capability.startsWith('oci/')) {
      if (this.#images === undefined) {
        throw new EngineError('capability-failed', `no registries are configured to answer ${capability}`);
      }
      const { tenant, leftMs = this.#timeoutMs } = caller ?? {};
      const request = readImageRequest(capability, payload);
      return await this.#images.answer(request, { timeoutMs: leftMs, ...(tenant === undefined ? {} : { tenant }) });
    }
    throw new EngineError('capability-failed', `unknown host capability: ${capability}`);
  }
}
