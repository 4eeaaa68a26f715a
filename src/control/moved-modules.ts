// Compares the modules that references were resolved to at two times.
import type { PinnedModule } from './replica-protocol.ts';

/** A module that is not what it was. */
export interface MovedModule {
  /** The name of the group member, or of the policy if it is no group. */
  readonly name: string;
  /** The digest as in a reference: of the manifest for a registry, else of the module. Undefined: not resolved before. */
  readonly from: string | undefined;
  readonly to: string;
}

/** The modules whose digests differ, or that are new. */
export function movedModules(before: readonly PinnedModule[], after: readonly PinnedModule[]): readonly MovedModule[] {
  const known = new Map(before.map((module) => [module.name, module]));
  return after.flatMap((module) => {
    const was = known.get(module.name);
    const isSame = was?.digest === module.digest && was.manifest === module.manifest;
    return isSame ? [] : [{ name: module.name, from: was && shownDigest(was), to: shownDigest(module) }];
  });
}

function shownDigest({ digest, manifest }: PinnedModule): string {
  return manifest ?? digest;
}
