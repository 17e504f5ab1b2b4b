// What the scripts beside it share: Chromium with a tab in which everything that goes wrong is
// noted, by whom: an error of a script or of the console, a report of the page's policy, a
// request that fails, or a violation that axe finds.
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import puppeteer from 'puppeteer-core'
import { chromium } from '../chromium.mjs'

const axe = readFileSync(join(dirname(fileURLToPath(import.meta.url)), '../node_modules/axe-core/axe.min.js'), 'utf8')
export const desk = { width: 1280, height: 900 }
export const phone = { width: 390, height: 844, isMobile: true, hasTouch: true }

// found is what has gone wrong, by its kind.
export const found = { axe: [], 'reports of the policy': [], 'errors of the console': [], other: [] }

// launch starts Chromium, which now and then crashes before it has started.
export async function launch(args = [], tries = 3) {
  try {
    return await puppeteer.launch({ executablePath: chromium(), args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', ...args] })
  } catch (error) {
    if (tries <= 1) throw error
    return launch(args, tries - 1)
  }
}

// open opens a tab of a reader of her own, who is let in by the address.
export async function open(browser, address, { viewport = desk, theme = 'light', scripts = true } = {}, where = () => '') {
  const tab = await (await browser.createBrowserContext()).newPage()
  const note = (kind, text) => found[kind].push(`${where()}: ${text}`)
  await tab.setViewport(viewport)
  await tab.setJavaScriptEnabled(scripts)
  await tab.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: theme }])
  // A page that was asked for and is an error is one that the reader sees.
  const isShown = (message) => message.text().startsWith('Failed to load resource') && message.location().url === tab.url()
  tab.on('console', (message) => ['error', 'warn'].includes(message.type()) && !isShown(message) && note('errors of the console', message.text()))
  tab.on('pageerror', (error) => note('errors of the console', error.message))
  tab.on('dialog', (dialog) => note('other', `dialog: ${dialog.message()}`) && dialog.dismiss())
  const session = await tab.createCDPSession()
  session.on('Audits.issueAdded', ({ issue }) => issue.code === 'ContentSecurityPolicyIssue' && note('reports of the policy', JSON.stringify(issue.details)))
  await session.send('Audits.enable')
  await tab.goto(address, { waitUntil: 'load' })
  return tab
}

// audit has axe look at a page, from a world of its own: the page's policy refuses scripts from
// elsewhere.
export async function audit(tab, where) {
  const session = await tab.createCDPSession()
  await session.send('Page.enable')
  const { frameTree } = await session.send('Page.getFrameTree')
  const { executionContextId: contextId } = await session.send('Page.createIsolatedWorld', { frameId: frameTree.frame.id })
  await session.send('Runtime.evaluate', { expression: axe, contextId })
  const { result } = await session.send('Runtime.evaluate', {
    expression: "axe.run(document, { resultTypes: ['violations'] }).then((r) => JSON.stringify(r.violations.map((v) => v.id + ': ' + v.help + ' (' + v.nodes.length + ': ' + v.nodes[0].target.join(' ') + ')')))",
    contextId, awaitPromise: true, returnByValue: true,
  })
  for (const text of JSON.parse(result.value)) found.axe.push(`${where}: ${text}`)
  await session.detach()
}

// walk moves the focus on by the keyboard until it is where the person wants it, and visible
// there.
export async function walk(tab, where, what, is) {
  for (let i = 0; i < 200; i++) {
    await tab.keyboard.press('Tab')
    const focus = await tab.evaluate(() => {
      const e = document.activeElement
      return { name: e.tagName, text: e.textContent.trim(), field: e.name, outline: getComputedStyle(e).outlineStyle }
    })
    if (!is(focus)) continue
    if (focus.outline === 'none') found.other.push(`${where()}: the focus on ${what} is not seen`)
    return
  }
  throw new Error(`the keyboard does not reach ${what} of ${tab.url()}`)
}

// end says what has gone wrong; the exit code is 1 if something has.
export async function end(browser, said) {
  await browser.close()
  for (const [kind, all] of Object.entries(found)) for (const text of all) console.log(`${kind}: ${text}`)
  const counts = Object.entries(found).map(([kind, all]) => `${all.length} ${kind === 'axe' ? 'axe violations' : kind === 'other' ? 'other problems' : kind}`)
  console.log(`${said}: ${counts.join(', ')}`)
  process.exitCode = Object.values(found).some((all) => all.length > 0) ? 1 : 0
}
