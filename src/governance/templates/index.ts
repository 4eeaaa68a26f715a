export { TemplateChecks } from './check-templates.ts';
export {
  hasHubTemplates,
  hasTemplates,
  namespaceGate,
  resolveHubTemplates,
  resolveTemplates,
} from './resolve-templates.ts';
export type { TemplateOptions, TemplateResolution } from './resolve-templates.ts';
export { staticTemplate, UNKNOWN_VALUE } from './static-template.ts';
export { NO_TEMPLATE_OBJECTS } from './rendering/template-objects.ts';
export type { ListAnswer, NoAnswer, ObjectAnswer, TemplateObjects } from './rendering/template-objects.ts';
