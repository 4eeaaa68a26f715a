import type { Labels } from '../../resources/index.ts';
import type { LookupResult, ObjectLookup, ObjectReference } from '../review/object-lookup.ts';

/** The namespaces of a test's cluster. */
export class TestNamespaces implements ObjectLookup {
  /** The result for other namespaces. */
  others: Exclude<LookupResult, { state: 'found' }> = { state: 'absent' };
  /** The objects that were looked up and not found. */
  readonly missed: ObjectReference[] = [];
  readonly #labels = new Map<string, Labels>();

  set(name: string, labels: Labels): void {
    this.#labels.set(name, labels);
  }

  delete(name: string): void {
    this.#labels.delete(name);
  }

  find(object: ObjectReference): LookupResult {
    const labels = object.kind === 'Namespace' ? this.#labels.get(object.name) : undefined;
    if (labels !== undefined) {
      return { state: 'found', object: { metadata: { name: object.name, labels: { ...labels } } } };
    }
    this.missed.push(object);
    return this.others;
  }
}
