import type { KubernetesObject } from '../../../resources/index.ts';
import type { AdmissionRequest } from '../request.ts';
import type { Webhook } from './webhook.ts';

/** The progress of mutation, and the webhooks that need reinvocation. */
export class MutationRound {
  readonly request: AdmissionRequest;
  object: KubernetesObject | null;
  hasChanged = false;
  #isSecond = false;
  /** Called webhooks with `reinvocationPolicy: IfNeeded`, until another one changes the object. */
  readonly #waiting = new Set<string>();
  readonly #again = new Set<string>();

  constructor(request: AdmissionRequest) {
    this.request = request;
    this.object = request.object;
  }

  mayCall({ id }: Webhook): boolean {
    return !this.#isSecond || this.#again.has(id);
  }

  change(object: KubernetesObject): void {
    this.object = object;
    this.hasChanged = true;
    for (const id of this.#waiting) {
      this.#again.add(id);
    }
    this.#waiting.clear();
  }

  called({ id, isReinvocable }: Webhook): void {
    if (isReinvocable) {
      this.#waiting.add(id);
    }
  }

  again(): void {
    this.#isSecond = true;
  }
}
