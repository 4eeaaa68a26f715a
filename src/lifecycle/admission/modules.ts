// Where the code of policies may come from.
import { fileURLToPath } from 'node:url';
import { nearestKey } from '../../engine/index.ts';
import {
  BUILTIN_MODULES,
  type BuiltinName,
  isBuiltin,
  isInside,
  isLocalHost,
  ModuleError,
  type ModuleReference,
  parseBuiltin,
  parseReference,
  redactUrl,
} from '../../modules/index.ts';
import { forbidden, invalid } from '../../resources/index.ts';
import type { Findings } from './findings.ts';

/** Whose modules they are, and where relative ones lead. */
export interface ModuleScope {
  readonly isNamespaced: boolean;
  /** Where `file://./…` leads: a URL of a folder that ends with a slash. Absent: such modules cannot be found. */
  readonly modulesUrl: URL | undefined;
}

const SCHEMES = ['file', 'http', 'https', 'registry', 'builtin'];
/** A reference in a message. */
const MAX_SHOWN_CHARACTERS = 200;

/** Checks the reference of a module. The name of the builtin module, where it is one. */
export function checkModule(
  module: string,
  field: string,
  { isNamespaced, modulesUrl }: ModuleScope,
  findings: Findings,
): BuiltinName | undefined {
  if (isBuiltin(module)) {
    return checkBuiltin(module, field, findings);
  }
  const isRelative = module.startsWith('file://./');
  try {
    const reference = parseReference(
      isRelative && modulesUrl !== undefined ? new URL(module.slice('file://'.length), modulesUrl).href : module,
    );
    if (isNamespaced) {
      checkSource(reference, module, field, modulesUrl, findings);
    }
  } catch (error) {
    if (!(error instanceof ModuleError)) {
      throw error;
    }
    if (error.code === 'registry-unsupported') {
      findings.warn('module-registry', field, error.message);
    } else {
      findings.reject('module-reference', invalid(field, shown(module), error.message + schemeHint(module)));
    }
  }
  return undefined;
}

function checkBuiltin(module: string, field: string, findings: Findings): BuiltinName | undefined {
  try {
    return parseBuiltin(module);
  } catch (error) {
    if (!(error instanceof ModuleError)) {
      throw error;
    }
    const name = module
      .trim()
      .replace(/^builtin:\/*/, '')
      .replace(/@.*$/s, '');
    const nearest = nearestKey(name, BUILTIN_MODULES);
    const hint = nearest === undefined ? '' : `. Did you mean builtin:${nearest}?`;
    findings.reject('module-builtin', invalid(field, shown(module), error.message + hint));
    return undefined;
  }
}

/** Tenants must not have the policy server read its own files, nor ask services that only it can reach. */
function checkSource(
  reference: ModuleReference,
  module: string,
  field: string,
  modulesUrl: URL | undefined,
  findings: Findings,
): void {
  if (reference.kind === 'file') {
    if (modulesUrl === undefined || !isInside(reference.path, fileURLToPath(modulesUrl))) {
      const detail = `policies of a namespace cannot name files of the policy server (${shown(module)}): use https:// or a builtin module, or make it a cluster-wide policy`;
      findings.reject('module-source', forbidden(field, detail));
    }
  } else if (isLocalHost(reference.url.hostname)) {
    const detail = `policies of a namespace cannot name loopback and link-local addresses, got ${reference.url.hostname}: use the name of a server that the policy server reaches over the network`;
    findings.reject('module-source', forbidden(field, detail));
  }
}

function schemeHint(module: string): string {
  const scheme = /^\s*([a-z][a-z0-9+.-]*):\/\//i.exec(module)?.[1] ?? '';
  const nearest = nearestKey(scheme, SCHEMES);
  return scheme === '' || nearest === undefined || SCHEMES.includes(scheme.toLowerCase())
    ? ''
    : `. Did you mean ${nearest}:${nearest === 'builtin' ? '' : '//'}?`;
}

/** A reference as it may be shown: what could be a password or a signed query is left out. */
function shown(module: string): string {
  const text = /\?|@(?!sha\d+:[^@]*$)/i.test(module) ? redactUrl(module) : module;
  return text.length > MAX_SHOWN_CHARACTERS ? `${text.slice(0, MAX_SHOWN_CHARACTERS)}…` : text;
}
