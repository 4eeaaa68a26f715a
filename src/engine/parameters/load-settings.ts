import { createRequire } from 'node:module';
import type * as effectiveSettings from './effective-settings.ts';
import type { ParametersDefinition } from './parameters-definition.ts';
import type * as settingsExpression from './settings-expression.ts';

const require = createRequire(import.meta.url);
const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';

/** Loaded on demand: it loads src/cel, and most policies have no parameters. */
export function parameterizedSettings(
  definition: ParametersDefinition,
  settingsJson: string,
): effectiveSettings.ParameterizedSettings {
  const { ParameterizedSettings } = require(`./effective-settings.${extension}`) as typeof effectiveSettings;
  return new ParameterizedSettings(definition, settingsJson);
}

/** Why an expression cannot be used as `parameters.settingsExpression`; undefined when it can. */
export function settingsExpressionProblem(expression: string, overridable: readonly string[]): string | undefined {
  const { SettingsExpression } = require(`./settings-expression.${extension}`) as typeof settingsExpression;
  const compiled = SettingsExpression.compile(expression, overridable);
  return 'problem' in compiled ? compiled.problem : undefined;
}
