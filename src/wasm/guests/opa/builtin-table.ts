import type { OpaBuiltins } from './builtin.ts';
import { cryptoBuiltins } from './crypto.ts';
import { encodingBuiltins } from './encoding.ts';
import { jsonPatchBuiltins } from './json-patch.ts';
import { netBuiltins } from './net.ts';
import { objectBuiltins } from './objects.ts';
import { randomBuiltins } from './random.ts';
import { regexBuiltins } from './regex.ts';
import { semverBuiltins } from './semver.ts';
import { stringBuiltins } from './strings.ts';
import { templateBuiltins } from './template.ts';
import { timeBuiltins } from './time.ts';
import { unitBuiltins } from './units.ts';
import { yamlBuiltins } from './yaml.ts';

/** All builtins that the host provides; OPA compiles the others into modules. docs/rego-builtins.md lists them. */
export const opaBuiltins: OpaBuiltins = new Map([
  ...cryptoBuiltins,
  ...encodingBuiltins,
  ...jsonPatchBuiltins,
  ...netBuiltins,
  ...objectBuiltins,
  ...randomBuiltins,
  ...regexBuiltins,
  ...semverBuiltins,
  ...stringBuiltins,
  ...templateBuiltins,
  ...timeBuiltins,
  ...unitBuiltins,
  ...yamlBuiltins,
]);
