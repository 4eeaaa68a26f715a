// The code of policies in files.
import { access } from 'node:fs/promises';
import { dirname } from 'node:path';
import { modulesOf } from '../../engine/definition/index.ts';
import type { PolicyDefinition } from '../../engine/index.ts';
import { type FileReference, isBuiltin, type ModuleReference, parseReference } from '../../modules/index.ts';
import { type ModuleSourceOptions, readModule } from '../module/module-source.ts';
import type { FilePolicy } from './file-policy.ts';
import { manifestsPolicy } from './manifests.ts';
import type { ModuleInput, RunnablePolicy } from './policy-runner.ts';

/** A policy of a file with all its modules. @throws CliError, ModuleError */
export async function runnablePolicy(
  policy: FilePolicy,
  options: Omit<ModuleSourceOptions, 'baseDir'>,
): Promise<RunnablePolicy> {
  const { definition, manifests, kubernetesVersion, folder, objects } = policy;
  if (manifests !== undefined) {
    return manifestsPolicy(definition.id, manifests, kubernetesVersion);
  }
  const modules = await modulesFor(definition, folder, options);
  return { definition, modules, ...(objects === undefined ? {} : { objects }) };
}

/** The modules of a definition. @param folder of the file that names them */
export async function modulesFor(
  definition: PolicyDefinition,
  folder: string,
  options: Omit<ModuleSourceOptions, 'baseDir'>,
): Promise<Readonly<Record<string, ModuleInput>>> {
  const references = modulesOf(definition).filter((reference) => !isBuiltin(reference));
  const modules = await Promise.all(
    references.map(async (reference): Promise<[string, ModuleInput]> => {
      const { bytes } = await readModule(await moduleReference(reference, folder), { ...options, baseDir: folder });
      return [reference, { bytes }];
    }),
  );
  return Object.fromEntries(modules);
}

/** The paths of the modules of a policy that are files; none where the code is manifests. @throws ModuleError */
export async function moduleFiles({ definition, manifests, folder }: FilePolicy): Promise<readonly string[]> {
  if (manifests !== undefined) {
    return [];
  }
  const references = modulesOf(definition).filter((reference) => !isBuiltin(reference));
  const found = await Promise.all(references.map((reference) => moduleReference(reference, folder)));
  return found.flatMap((one) => (one.kind === 'file' ? [one.path] : []));
}

/**
 * The reference of a module in a file. A relative one, `file://./policy.wasm`, is below the folder of the file or, since
 * policy servers have a folder of their own for these, below the nearest folder above that has it.
 * @throws ModuleError when it is invalid
 */
export async function moduleReference(reference: string, folder: string): Promise<ModuleReference> {
  const nearest = parseReference(reference, { baseDir: folder });
  if (nearest.kind !== 'file' || !/^file:\/\/\.{1,2}(?:\/|$)/i.test(reference.trim())) {
    return nearest;
  }
  for (const base of foldersAbove(folder)) {
    // The file URL of a folder's own file stays the same reference.
    const candidate = parseReference(reference, { baseDir: base }) as FileReference;
    if (await isThere(candidate.path)) {
      return candidate;
    }
  }
  return nearest;
}

/** The reference with an absolute path if it is that of a relative file; others unchanged. @throws ModuleError */
export async function absoluteModule(reference: string, folder: string): Promise<string> {
  if (isBuiltin(reference)) {
    return reference;
  }
  const found = await moduleReference(reference, folder);
  return found.kind === 'file' ? `${found.shown}${found.digest === undefined ? '' : `@${found.digest}`}` : reference;
}

function* foldersAbove(folder: string): Generator<string> {
  for (let at = folder, above = dirname(at); ; at = above, above = dirname(at)) {
    yield at;
    if (above === at) {
      return;
    }
  }
}

async function isThere(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch {
    return false;
  }
}
