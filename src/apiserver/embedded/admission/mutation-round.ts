import type { KubernetesObject } from '../../../resources/index.ts';
import type { AdmissionAttributes } from '../request/request.ts';
import type { ConfiguredWebhook } from './webhook.ts';

/** The object during mutation, and the webhooks that are called a second time (reinvocation). */
export class MutationRound {
  readonly request: AdmissionAttributes;
  object: KubernetesObject | null;
  hasChanged = false;
  #isSecond = false;
  /** Called webhooks with `reinvocationPolicy: IfNeeded`. They are called again if a later one changes the object. */
  readonly #reinvocable = new Set<string>();
  readonly #toReinvoke = new Set<string>();

  constructor(request: AdmissionAttributes) {
    this.request = request;
    this.object = request.object;
  }

  mayCall({ id }: ConfiguredWebhook): boolean {
    return !this.#isSecond || this.#toReinvoke.has(id);
  }

  change(object: KubernetesObject): void {
    this.object = object;
    this.hasChanged = true;
    for (const id of this.#reinvocable) {
      this.#toReinvoke.add(id);
    }
    this.#reinvocable.clear();
  }

  called({ id, isReinvocable }: ConfiguredWebhook): void {
    if (isReinvocable) {
      this.#reinvocable.add(id);
    }
  }

  startSecondRound(): void {
    this.#isSecond = true;
  }
}
