// Which code may run in the main thread, and for whom: nobody can end it there.
import { type BoundedGuest, createBoundedGuest, type JsonObject, type ModuleUse } from '../engine/index.ts';
import type { CompiledPolicyModule } from './compiled-module.ts';
import type { TableEntry } from './evaluation-protocol.ts';
import type { PolicyEvaluation } from './policy-evaluation.ts';

/** Longest settings and match of a policy, as JSON: they are compiled here when they are first needed. Characters. */
export const MAX_DIRECT_SETTINGS = 4 * 1024;
/** Largest memory that a module starts with: an instance takes the longer to make the more it has. Pages of 64 KiB. */
const MAX_DIRECT_PAGES = 64;

/** The modules that may answer for policies in the main thread. */
export class DirectModules {
  readonly #evaluation: Pick<PolicyEvaluation, 'prepare' | 'provide'>;
  readonly #modules = new Map<string, CompiledPolicyModule>();
  /** What answers for tenants, by {@link boundedDigest}. */
  readonly #boundedGuests = new Map<string, BoundedGuest>();

  constructor(evaluation: Pick<PolicyEvaluation, 'prepare' | 'provide'>) {
    this.#evaluation = evaluation;
  }

  /** Takes over what there is: of modules that may never run here, nothing. */
  add(modules: readonly CompiledPolicyModule[]): void {
    for (const module of modules.filter(isBounded)) {
      this.#modules.set(module.digest, module);
    }
  }

  delete(digests: readonly string[]): void {
    digests.forEach((digest) => this.#modules.delete(digest));
  }

  /**
   * An entry, if modules that may run here answer for it by themselves, and are ready soon: with the code that may do so for its
   * owner. `length`: of its match, as JSON.
   */
  entryOf(entry: TableEntry, length: number): TableEntry | undefined {
    const { match } = entry;
    const isTenants = match?.namespace !== undefined;
    if (isTenants && match.matchConditions.length > 0) {
      return undefined;
    }
    if ('failed' in entry) {
      return entry;
    }
    const { definition, digests } = entry;
    const isGroup = definition.kind === 'group';
    const uses: readonly ModuleUse[] = isGroup ? definition.members : [definition];
    const all = uses.reduce((sum, { settings }) => sum + lengthOf(settings), length);
    const isShort = all + (isGroup ? definition.expression.length : 0) <= MAX_DIRECT_SETTINGS;
    const isHere = ({ module, settings, contextAwareResources }: ModuleUse): boolean => {
      const code = this.#modules.get(digests[module] ?? '');
      return (
        contextAwareResources.length === 0 &&
        code !== undefined &&
        (isTenants ? this.#takes(code, settings) : this.#isStarted(code))
      );
    };
    if (!isShort || !uses.every(isHere)) {
      return undefined;
    }
    return isTenants ? { ...entry, digests: boundedDigests(digests) } : entry;
  }

  /** Whether what a module does by a tenant's settings is bounded by the size of the review. */
  #takes(code: CompiledPolicyModule, settings: JsonObject): boolean {
    if (code.mode !== 'builtin') {
      return false;
    }
    const digest = boundedDigest(code.digest);
    let guest = this.#boundedGuests.get(digest);
    if (guest === undefined) {
      guest = createBoundedGuest(code.name);
      this.#boundedGuests.set(digest, guest);
      this.#evaluation.provide(digest, guest);
    }
    return guest.takes(settings);
  }

  /** Starts a module when the first policy that may run here uses it: those of others are never started here. */
  #isStarted(module: CompiledPolicyModule): boolean {
    const isStarted = this.#evaluation.prepare(module);
    if (!isStarted) {
      // Nor is it tried again.
      this.#modules.delete(module.digest);
    }
    return isStarted;
  }
}

/**
 * Whether all that a module does is bounded by its fuel, or its code is ours. Not so are the functions that hosts of Rego offer,
 * and modules that need a new instance for every call, or a large one.
 */
function isBounded(module: CompiledPolicyModule): boolean {
  if (module.mode === 'builtin') {
    return true;
  }
  const { isolation, initialPages } = module.compiled.shape;
  return module.mode === 'kubewarden-wapc' && isolation === 'restore' && initialPages <= MAX_DIRECT_PAGES;
}

/** What names the code of a builtin module that answers for tenants. */
function boundedDigest(digest: string): string {
  return `bounded ${digest}`;
}

function boundedDigests(digests: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(digests).map(([module, digest]) => [module, boundedDigest(digest)]));
}

/** As JSON. Characters. */
export function lengthOf(value: object | undefined): number {
  return value === undefined ? 0 : JSON.stringify(value).length;
}
