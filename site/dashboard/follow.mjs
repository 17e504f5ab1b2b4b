// Opens a page that says something, prints "open", and waits until the page says it no longer,
// without being read again by hand. The address is what spillway dashboard prints; the page and
// the text follow.
import { audit, end, launch, open } from './browser.mjs'

const [address, path, text] = process.argv.slice(2)
const browser = await launch()
const tab = await open(browser, address, {}, () => path)
await tab.goto(new URL(path, address).href, { waitUntil: 'load' })
await tab.waitForFunction((text) => document.querySelector('main').innerText.includes(text), {}, text)
await tab.evaluate(() => { window.isTheSamePage = true })
await audit(tab, path)
console.log('open')
await tab.waitForFunction((text) => !document.querySelector('main').innerText.includes(text), { timeout: 60000 }, text)
if (!(await tab.evaluate(() => window.isTheSamePage))) throw new Error('the page was read again as a whole')
await audit(tab, path)
await end(browser, 'the page follows')
