import { readFileSync } from 'node:fs'
import { defineConfig } from 'vitepress'

// Of each version the site is built into a folder of its own; versions.json names them all.
const versions: { name: string; path: string }[] = JSON.parse(readFileSync(new URL('../versions.json', import.meta.url), 'utf8'))
const version = process.env.SITE_VERSION || versions[0].name
const base = process.env.SITE_BASE || '/'

const pages = (...items: [string, string][]) => items.map(([text, link]) => ({ text, link }))

export default defineConfig({
  title: 'Spillway',
  description: 'Controlled releases for Kubernetes: config changes, zones, plans and fleets in a safe order, each wait with its reason.',
  lang: 'en-US',
  srcDir: 'pages',
  outDir: process.env.SITE_OUT || '../dist/site',
  base,
  cleanUrls: true,
  lastUpdated: false,
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: base + 'logo.svg' }]],
  markdown: {
    // The anchors that GitHub makes, so that a link works in both places.
    anchor: {
      slugify: (text: string) => text.toLowerCase().replace(/[^\p{L}\p{N}\- _]/gu, '').replaceAll(' ', '-'),
    },
    languageAlias: { console: 'shellsession' },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
  },
  themeConfig: {
    logo: '/logo.svg',
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Quick start', link: '/quickstart' },
      { text: 'Concepts', link: '/concepts' },
      { text: 'Reference', link: '/kinds' },
      { text: version, items: versions.map((v) => ({ text: v.name, link: v.path, target: '_self' })) },
    ],
    sidebar: [
      { text: 'Start', items: pages(['Quick start', '/quickstart'], ['Zones in ten minutes', '/tutorial-zones'], ['A fleet in ten minutes', '/tutorial-fleet'], ['Concepts', '/concepts']) },
      {
        text: 'Rings',
        items: pages(['Config changes', '/config'], ['Config of each revision', '/pins'], ['Zones: rolling', '/zones'], ['Zones: scaling', '/scaling'], ['Plans', '/plans'], ['Packages', '/packages'], ['Your first package', '/first-package'], ['Gates', '/gates'], ['Notify', '/notify'], ['Fleet', '/fleet']),
      },
      { text: 'Tasks', items: pages(['A rollout is stuck', '/stuck'], ['Command line', '/cli'], ['Explain a wait', '/explain'], ['Simulate a change', '/simulate'], ['Forecast', '/forecast'], ['Dashboard', '/dashboard'], ['Lint manifests', '/lint']) },
      {
        text: 'Change over',
        items: pages(['Change over, and back', '/migrate'], ['From wave', '/from-wave'], ['From Reloader', '/from-reloader'], ['From rollout-operator', '/from-rollout-operator'], ['From KUDO', '/from-kudo'], ['From fleeet', '/from-fleeet'], ['From Flux', '/from-flux'], ['With Argo CD, Flux or Helm', '/with-argocd-flux-helm']),
      },
      { text: 'Operate', items: pages(['Operations', '/operations'], ['Admission', '/admission'], ['Security', '/security'], ['Measurements', '/measurements']) },
      {
        text: 'Reference',
        items: pages(['Kinds', '/kinds'], ['The record of a rollout', '/record'], ['Labels and annotations', '/annotations'], ['Annotations of Reloader', '/reloader'], ['Counterparts', '/counterparts'], ['Commands', '/commands'], ['Flags of the manager', '/flags'], ['Values of an installation', '/values'], ['Metrics', '/metrics'], ['Reasons', '/reasons'], ['Exit codes', '/exit-codes'], ['Decisions', '/adr/']),
      },
    ],
    socialLinks: [{ icon: 'github', link: 'https://github.com/spillway-dev/spillway' }],
    footer: { message: 'Apache 2.0' },
  },
})
