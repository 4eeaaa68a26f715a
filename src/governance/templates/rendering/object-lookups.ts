import { failTemplate, TemplateError } from '../../../go/templates/index.ts';
import { parseLabelSelector, SelectorError } from '../../../resources/index.ts';
import type { JsonObject } from '../../../values/index.ts';
import { MAX_LISTED_OBJECTS, MAX_LOOKUPS } from './limits.ts';
import type { NoAnswer, ReadGate, TemplateLookup, TemplateObjects } from './template-objects.ts';

/** A template needs an object that has not been read yet. Ends the evaluation of one text, not of the rendering. */
export class UnknownTemplateObject extends Error {
  override readonly name = 'UnknownTemplateObject';
}

/** The look-ups of one rendering: checks, counts and records them. */
export class ObjectLookups {
  readonly #objects: TemplateObjects;
  readonly #gate: ReadGate;
  readonly #lookedUp = new Map<string, TemplateLookup>();
  readonly #unknown = new Map<string, TemplateLookup>();
  /** The namespace of look-ups that name none. */
  readonly #defaultNamespace: string;
  #count = 0;
  /** Whether the rendering read Secrets. */
  usedSensitive = false;

  constructor(objects: TemplateObjects, gate: ReadGate, defaultNamespace: string) {
    this.#objects = objects;
    this.#gate = gate;
    this.#defaultNamespace = defaultNamespace;
  }

  get lookedUp(): readonly TemplateLookup[] {
    return [...this.#lookedUp.values()];
  }

  get unknown(): readonly TemplateLookup[] {
    return [...this.#unknown.values()];
  }

  /** The namespace that a look-up reads: its own, or the default. */
  namespaceOf(namespace: string): string {
    return namespace === '' ? this.#defaultNamespace : namespace;
  }

  /** The object; undefined when the cluster does not have it. */
  get(apiVersion: string, kind: string, namespace: string, name: string): JsonObject | undefined {
    const lookup = this.#record({
      apiVersion,
      kind,
      namespace: this.namespaceOf(namespace),
      name,
      selector: '',
    });
    const answer = this.#objects.get(apiVersion, kind, lookup.namespace, name);
    switch (answer.state) {
      case 'found':
        this.usedSensitive ||= kind === 'Secret';
        return answer.object;
      case 'absent':
        return undefined;
      default:
        return this.#noAnswer(lookup, answer);
    }
  }

  list(apiVersion: string, kind: string, namespace: string, selector: string): readonly JsonObject[] {
    const lookup = this.#record({
      apiVersion,
      kind,
      namespace: this.namespaceOf(namespace),
      name: '',
      selector: checkedSelector(selector),
    });
    const answer = this.#objects.list(apiVersion, kind, lookup.namespace, lookup.selector);
    if (answer.state !== 'found') {
      return this.#noAnswer(lookup, answer);
    }
    this.usedSensitive ||= kind === 'Secret';
    if (answer.objects.length > MAX_LISTED_OBJECTS) {
      throw new TemplateError('template-limit', `there are more than ${MAX_LISTED_OBJECTS} objects of kind ${kind}`);
    }
    return answer.objects;
  }

  #record(lookup: TemplateLookup): TemplateLookup {
    if (lookup.apiVersion === '' || lookup.kind === '') {
      failTemplate('the apiVersion and kind are required');
    }
    this.#count += 1;
    if (this.#count > MAX_LOOKUPS) {
      throw new TemplateError('template-limit', `the template looks up more than ${MAX_LOOKUPS} objects`);
    }
    const allowed = this.#gate(lookup);
    if (allowed !== true) {
      failTemplate(`the template may not read ${lookupText(lookup)}: ${allowed}`);
    }
    this.#lookedUp.set(keyOf(lookup), lookup);
    return lookup;
  }

  #noAnswer(lookup: TemplateLookup, answer: NoAnswer): never {
    switch (answer.state) {
      case 'unknown':
        this.#unknown.set(keyOf(lookup), lookup);
        throw new UnknownTemplateObject(`${lookupText(lookup)} is not known yet`);
      case 'unserved':
        return failTemplate(
          `the API server does not serve ${lookup.kind} of ${lookup.apiVersion}: install its CustomResourceDefinition, or correct the name`,
        );
      default:
        return failTemplate(`cannot read ${lookupText(lookup)}: ${answer.reason}`);
    }
  }
}

function keyOf({ apiVersion, kind, namespace, name, selector }: TemplateLookup): string {
  return JSON.stringify([apiVersion, kind, namespace, name, selector]);
}

/** `ConfigMap a/b`, `the objects of kind Pod in namespace a`. */
function lookupText({ kind, namespace, name }: TemplateLookup): string {
  if (name !== '') {
    return `${kind} ${namespace === '' ? '' : `${namespace}/`}${name}`;
  }
  return `the objects of kind ${kind}${namespace === '' ? '' : ` in namespace ${namespace}`}`;
}

function checkedSelector(text: string): string {
  try {
    return parseLabelSelector(text).toString();
  } catch (error) {
    if (error instanceof SelectorError) {
      return failTemplate(`not a valid label selector: ${error.message}`);
    }
    throw error;
  }
}
